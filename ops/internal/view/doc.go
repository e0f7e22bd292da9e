// Package view has the types in which people see an outbox. Package ops exports them under the
// same names; they stand here because both of its halves, the table's and the stream's, need them.
package view
