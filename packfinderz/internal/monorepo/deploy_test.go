package monorepo

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
)

func TestMain(m *testing.M) { backendtest.Main(m) }

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// Heroku looks at the top of the repository that is pushed, and builds with the folder of the Dockerfile as its context, which has to
// hold the modules that packfinderz/ stands on.
const (
	top        = "../../.."
	backend    = "../.."
	procfile   = top + "/Procfile"
	herokuFile = top + "/heroku.yml"
	dockerfile = top + "/Dockerfile"
)

// The processes of the Procfile are programs that make and the Dockerfile build, the publisher among them, and heroku.yml has the same.
func TestProcesses(t *testing.T) {
	t.Parallel()
	heroku := read(t, herokuFile)
	makefile := read(t, backend+"/Makefile")
	built := imagePrograms(t)
	var processes []string
	for line := range strings.Lines(read(t, procfile)) {
		process, command, _ := strings.Cut(strings.TrimSpace(line), ": ")
		processes = append(processes, process)
		program := strings.TrimPrefix(strings.Fields(command)[0], "bin/")
		if _, err := os.Stat(filepath.Join(backend, "cmd", program, "main.go")); err != nil {
			t.Errorf("%s runs %s: %v", process, program, err)
		}
		if !strings.Contains(makefile, "./cmd/"+program) {
			t.Errorf("make does not build %s", program)
		}
		if !slices.Contains(built, program) {
			t.Errorf("the Dockerfile does not build %s", program)
		}
		if !strings.Contains(heroku, process+":\n") || !strings.Contains(heroku, "- /bin/"+strings.TrimPrefix(command, "bin/")+"\n") {
			t.Errorf("heroku.yml does not run %s as %s", command, process)
		}
	}
	// The api is an example, and no door of a deployment.
	if want := []string{"release", "publisher", "worker"}; !slices.Equal(processes, want) || strings.Contains(heroku, "web:") {
		t.Errorf("the processes are %q, want %q", processes, want)
	}
}

var goBuild = regexp.MustCompile(`(?m)^RUN cd packfinderz && .*go build .*-o (\S+) (.+)$`)

// imagePrograms are those that the Dockerfile builds and puts into the image's /bin.
func imagePrograms(t *testing.T) (programs []string) {
	t.Helper()
	docker := read(t, dockerfile)
	build := goBuild.FindStringSubmatch(docker)
	if build == nil {
		t.Fatal("the Dockerfile builds nothing")
	}
	if !strings.Contains(docker, "COPY --from=build "+build[1]+" /bin/\n") {
		t.Errorf("what is built into %s is not in the image", build[1])
	}
	for path := range strings.FieldsSeq(build[2]) {
		programs = append(programs, strings.TrimPrefix(path, "./cmd/"))
	}
	return programs
}

// What the Dockerfile names is there, and the context has all modules that the programs are built of.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	docker, programs := read(t, dockerfile), imagePrograms(t)
	for _, program := range programs {
		if _, err := os.Stat(filepath.Join(backend, "cmd", program, "main.go")); err != nil {
			t.Error(err)
		}
	}
	command := regexp.MustCompile(`(?m)^CMD \["/bin/([a-z-]+)"\]$`).FindStringSubmatch(docker)
	if command == nil || !slices.Contains(programs, command[1]) {
		t.Errorf("the image's command %q is not built", command)
	}
	for _, words := range []string{"\nCOPY . .\n", "\nENV PORT="} {
		if !strings.Contains(docker, words) {
			t.Errorf("the Dockerfile has no %q", strings.TrimSpace(words))
		}
	}
	module := read(t, backend+"/go.mod")
	compiler := regexp.MustCompile(`(?m)^FROM golang:(\d+\.\d+) `).FindStringSubmatch(docker)
	if compiler == nil || !strings.Contains(module, "\ngo "+compiler[1]+".") {
		t.Errorf("the Dockerfile compiles with Go %q, go.mod asks for another", compiler)
	}
	ignored := strings.Fields(read(t, top+"/.dockerignore"))
	for _, replaced := range regexp.MustCompile(`(?m)=> (\S+)$`).FindAllStringSubmatch(module, -1) {
		if _, err := os.Stat(filepath.Join(backend, replaced[1], "go.mod")); err != nil || !strings.HasPrefix(replaced[1], "../") {
			t.Errorf("the module in %s is not in the build's context: %v", replaced[1], err)
		}
		if slices.Contains(ignored, strings.TrimPrefix(replaced[1], "../")) {
			t.Errorf("the build does not see %s", replaced[1])
		}
	}
	if build := regexp.MustCompile(`(?m)^    publisher: (\S+)$`).FindStringSubmatch(read(t, herokuFile)); build == nil || build[1] != "Dockerfile" {
		t.Errorf("heroku.yml builds %q, want the Dockerfile beside it", build)
	}
	for _, misplaced := range []string{"Procfile", "heroku.yml", "Dockerfile"} {
		if _, err := os.Stat(filepath.Join(backend, misplaced)); err == nil {
			t.Errorf("packfinderz/%s is where Heroku does not look", misplaced)
		}
	}
}

// A .env has secrets in it: git and the image leave it out. The example stays.
func TestEnvFileIsLeftOut(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{"the repository's": top + "/.gitignore", "the folder's": backend + "/.gitignore"} {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, ".gitignore"), []byte(read(t, file)), 0o600); err != nil {
			t.Fatal(err)
		}
		git := func(args ...string) error {
			return exec.CommandContext(t.Context(), "git", append([]string{"-C", folder}, args...)...).Run()
		}
		if err := git("init", "-q"); err != nil {
			t.Fatal(err)
		}
		for path, ignored := range map[string]bool{".env": true, "packfinderz/.env": true, ".env.example": false} {
			if err := git("check-ignore", "-q", path); (err == nil) != ignored {
				t.Errorf("%s .gitignore: %s is ignored: %t, want %t", name, path, err == nil, ignored)
			}
		}
	}
	if !slices.Contains(strings.Fields(read(t, top+"/.dockerignore")), "**/.env") {
		t.Error("a .env would be in the image")
	}
}
