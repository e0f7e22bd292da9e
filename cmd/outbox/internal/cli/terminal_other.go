//go:build !unix

package cli

// columns is the width of a screen.
func columns(any) int { return usualColumns }
