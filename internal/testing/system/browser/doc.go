// Package browsertest has no code of its own: its tests drive the console in a headless Chromium.
// It is a module of its own, so that nobody who mounts the console needs the browser's driver.
package browsertest
