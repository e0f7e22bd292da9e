package cli

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version is set by the linker for releases; otherwise the module's version is shown.
var Version string

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			version := Version
			if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "(devel)" {
				version = cmp.Or(version, info.Main.Version)
			}
			version = cmp.Or(version, "devel")
			return a.answer(map[string]string{"version": version, "go": runtime.Version()}, "outbox %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		},
	}
}
