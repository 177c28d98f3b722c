package compose

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// root is the repository's, seen from here.
const root = "../.."

// file is the part of docker-compose.yml that is looked at. A field that is not listed is a fault, so that a
// misspelt one is found without an engine.
type file struct {
	Router    any `yaml:"x-router"`
	Memcached any `yaml:"x-memcached"`
	Services  map[string]service
	Networks  map[string]struct {
		Internal bool
		IPAM     struct{ Config []struct{ Subnet string } }
	}
}

type service struct {
	Image       string
	Build       struct{ Context, Target string }
	Command     []string
	User        string
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	SecurityOpt []string `yaml:"security_opt"`
	Ports       []string
	Volumes     []string
	Profiles    []string
	DependsOn   any `yaml:"depends_on"`
	Networks    map[string]struct {
		Address string `yaml:"ipv4_address"`
	}
}

// compose reads the file, with every variable as it is by default.
func compose(t *testing.T) (f file) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	b = regexp.MustCompile(`\$\{\w+:?-([^}]*)\}`).ReplaceAll(b, []byte("$1"))
	if i := bytes.IndexByte(b, '$'); i >= 0 {
		t.Fatalf("a variable without a default: %.30q", b[i:])
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFileIsWhole(t *testing.T) {
	f := compose(t)
	for _, name := range []string{"cache-a", "cache-b", "cache-c", "router-1", "router-2", "prometheus", "loadtest", "chaos"} {
		if f.Services[name].Image == "" {
			t.Errorf("no service %s", name)
		}
	}
	for name, s := range f.Services {
		optional := name == "loadtest" || name == "chaos"
		if optional != slices.Equal(s.Profiles, []string{name}) {
			t.Errorf("service %s is in the profiles %q", name, s.Profiles)
		}
		for _, v := range s.Volumes {
			source, _, _ := strings.Cut(v, ":")
			if _, err := os.Stat(filepath.Join(root, source)); !filepath.IsAbs(source) && err != nil {
				t.Errorf("service %s: %v", name, err)
			}
			if !strings.HasSuffix(v, ":ro") && source != "/var/run/docker.sock" {
				t.Errorf("service %s may write to %s", name, source)
			}
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("service %s is open to other hosts: %s", name, p)
			}
		}
		if name != "prometheus" && (!s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"})) {
			t.Errorf("service %s is not locked up", name)
		}
	}
}

// Images are public ones or built here, and those that are pulled have stand-ins of the same names.
func TestImagesHaveStandIns(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(root, "scripts/stand-in-images.sh"))
	if err != nil {
		t.Fatal(err)
	}
	dockerfile, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	images := []string{regexp.MustCompile(`(?m)^FROM (\S+) AS build$`).FindStringSubmatch(string(dockerfile))[1]}
	for name, s := range compose(t).Services {
		if s.Build.Context == "" {
			images = append(images, s.Image)
		} else if !strings.Contains(string(dockerfile), " AS "+s.Build.Target+"\n") {
			t.Errorf("service %s: the Dockerfile has no target %q", name, s.Build.Target)
		}
	}
	for _, image := range images {
		if !regexp.MustCompile(`(?m)^ +import ` + regexp.QuoteMeta(image) + ` `).Match(script) {
			t.Errorf("no stand-in for %s", image)
		}
	}
}

// What the routers are told on their command lines fits the file that they are given.
func TestRoutersCheck(t *testing.T) {
	f := compose(t)
	config, err := filepath.Abs("router.yml")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "run", "cacherouter/cmd/cacherouter", "check", "--config", config).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ok, 3 servers") {
		t.Errorf("check: %v, %s", err, out)
	}
	for _, name := range []string{"router-1", "router-2"} {
		s := f.Services[name]
		address := s.Networks["gossip"].Address
		for _, want := range []string{"--name=" + name, "--gossip=" + address + ":11313"} {
			if !slices.Contains(s.Command, want) {
				t.Errorf("%s is not given %s but %q", name, want, s.Command)
			}
		}
		for _, other := range []string{"router-1", "router-2"} {
			joins := slices.ContainsFunc(f.Services[other].Command, func(arg string) bool {
				return strings.HasPrefix(arg, "--join=") && strings.Contains(arg, address+":11313")
			})
			if !joins {
				t.Errorf("%s does not join %s", other, name)
			}
		}
		if prefix, ok := strings.CutSuffix(f.Networks["gossip"].IPAM.Config[0].Subnet, ".0/24"); !ok || !strings.HasPrefix(address, prefix+".") {
			t.Errorf("%s has the address %s outside of its network", name, address)
		}
	}
}
