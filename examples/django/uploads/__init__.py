"""An app with files, which tells of each that is stored, and makes its thumbnail."""
