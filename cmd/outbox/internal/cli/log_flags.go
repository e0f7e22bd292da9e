package cli

import (
	"log/slog"

	"github.com/spf13/cobra"
)

// logFlags are the flags of long-running commands: relay, drain and console.
type logFlags struct{ logFormat, logLevel string }

func (f *logFlags) flags(cmd *cobra.Command) {
	s := cmd.Flags()
	s.StringVar(&f.logFormat, "log-format", "text", "text or json")
	s.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
}

func (f *logFlags) logger(a *app) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return nil, usagef("--log-level is %q; choose debug, info, warn or error", f.logLevel)
	}
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: readable}
	switch f.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(a.Err, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(a.Err, options)), nil
	}
	return nil, usagef("--log-format is %q; choose text or json", f.logFormat)
}

// readable writes durations as 1.5s; JSON would have nanoseconds.
func readable(_ []string, attr slog.Attr) slog.Attr {
	if attr.Value.Kind() == slog.KindDuration {
		attr.Value = slog.StringValue(attr.Value.Duration().String())
	}
	return attr
}
