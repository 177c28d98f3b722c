package kubernetes

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"
)

// manifests are the objects of a file, by kind.
type manifests struct {
	services []corev1.Service
	configs  []corev1.ConfigMap
	budgets  []policyv1.PodDisruptionBudget
	policies []networkingv1.NetworkPolicy
	pods     []workload
}

// workload is a Deployment or a StatefulSet.
type workload struct {
	name     string
	replicas int32
	selector *metav1.LabelSelector
	template corev1.PodTemplateSpec
}

// read decodes a file. A field that the API does not have is a fault.
func read(t *testing.T, file string) (m manifests) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for docs := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(b))); ; {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return m
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := m.add(doc); err != nil {
			t.Errorf("%s: %v in\n%s", file, err, doc)
		}
	}
}

func (m *manifests) add(doc []byte) error {
	var kind metav1.TypeMeta
	if err := strict.Unmarshal(doc, &kind); err != nil {
		return err
	}
	switch kind.APIVersion + " " + kind.Kind {
	case "v1 Service":
		return appendTo(&m.services, doc)
	case "v1 ConfigMap":
		return appendTo(&m.configs, doc)
	case "policy/v1 PodDisruptionBudget":
		return appendTo(&m.budgets, doc)
	case "networking.k8s.io/v1 NetworkPolicy":
		return appendTo(&m.policies, doc)
	case "apps/v1 Deployment":
		var d appsv1.Deployment
		err := strict.UnmarshalStrict(doc, &d)
		m.pods = append(m.pods, workload{d.Name, *d.Spec.Replicas, d.Spec.Selector, d.Spec.Template})
		return err
	case "apps/v1 StatefulSet":
		var s appsv1.StatefulSet
		err := strict.UnmarshalStrict(doc, &s)
		m.pods = append(m.pods, workload{s.Name, *s.Spec.Replicas, s.Spec.Selector, s.Spec.Template})
		return err
	}
	return errors.New("nobody knows this kind")
}

func appendTo[T any](all *[]T, doc []byte) error {
	var one T
	err := strict.UnmarshalStrict(doc, &one)
	*all = append(*all, one)
	return err
}

// containers are all of a pod's.
func (w *workload) containers() []corev1.Container {
	return slices.Concat(w.template.Spec.InitContainers, w.template.Spec.Containers)
}

// port finds the number of a port by its name.
func (w *workload) port(name string) int32 {
	for _, c := range w.containers() {
		for _, p := range c.Ports {
			if p.Name == name {
				return p.ContainerPort
			}
		}
	}
	return 0
}

// one returns the workload that a selector is for.
func (m *manifests) one(t *testing.T, what string, selector map[string]string) *workload {
	t.Helper()
	for i := range m.pods {
		if labels.SelectorFromSet(selector).Matches(labels.Set(m.pods[i].template.Labels)) {
			return &m.pods[i]
		}
	}
	t.Fatalf("%s selects no pods of its file: %v", what, selector)
	return nil
}

var files = []string{"memcached.yml", "tier.yml", "sidecar.yml"}

// Selectors, ports, probes and volumes fit each other.
func TestManifestsFit(t *testing.T) {
	for _, file := range files {
		m := read(t, file)
		for i := range m.pods {
			m.checkPods(t, &m.pods[i])
		}
		for _, s := range m.services {
			w := m.one(t, "Service "+s.Name, s.Spec.Selector)
			for _, p := range s.Spec.Ports {
				if at := p.TargetPort; at.Type == intstr.String && w.port(at.StrVal) == 0 || at.Type == intstr.Int && w.port(p.Name) != p.Port {
					t.Errorf("%s: Service %s: no container has the port %s", file, s.Name, p.Name)
				}
			}
		}
		for _, b := range m.budgets {
			w := m.one(t, "PodDisruptionBudget "+b.Name, b.Spec.Selector.MatchLabels)
			if int32(b.Spec.MaxUnavailable.IntValue()) >= w.replicas {
				t.Errorf("%s: %s: all of its pods may go at a time", file, b.Name)
			}
		}
		for _, p := range m.policies {
			w := m.one(t, "NetworkPolicy "+p.Name, p.Spec.PodSelector.MatchLabels)
			for _, in := range p.Spec.Ingress {
				for _, port := range in.Ports {
					if w.port(port.Port.StrVal) == 0 {
						t.Errorf("%s: NetworkPolicy %s: no container has the port %v", file, p.Name, port.Port)
					}
				}
			}
		}
	}
}

func (m *manifests) checkPods(t *testing.T, w *workload) {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(w.selector)
	if err != nil || !selector.Matches(labels.Set(w.template.Labels)) {
		t.Errorf("%s does not select its own pods: %v", w.name, err)
	}
	if w.template.Spec.SecurityContext == nil || w.template.Spec.SecurityContext.RunAsNonRoot == nil {
		t.Errorf("%s may run as root", w.name)
	}
	for _, c := range w.containers() {
		for _, p := range []*corev1.Probe{c.ReadinessProbe, c.LivenessProbe, c.StartupProbe} {
			if p == nil {
				continue
			}
			if p.HTTPGet != nil && w.port(p.HTTPGet.Port.StrVal) == 0 || p.TCPSocket != nil && w.port(p.TCPSocket.Port.StrVal) == 0 {
				t.Errorf("%s: a probe of %s asks a port that is not there", w.name, c.Name)
			}
		}
		for _, mount := range c.VolumeMounts {
			m.checkMount(t, w, mount.Name)
		}
		if s := c.SecurityContext; s == nil || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
			t.Errorf("%s: container %s is not locked up", w.name, c.Name)
		}
	}
}

// checkMount wants a volume to be there, and its ConfigMap in the same file.
func (m *manifests) checkMount(t *testing.T, w *workload, name string) {
	t.Helper()
	for _, v := range w.template.Spec.Volumes {
		if v.Name == name && slices.ContainsFunc(m.configs, func(c corev1.ConfigMap) bool { return c.Name == v.ConfigMap.Name }) {
			return
		}
	}
	t.Errorf("%s mounts %s, which is not there", w.name, name)
}

// Routers find the servers by the records that the headless Service makes.
func TestSRVNames(t *testing.T) {
	s := read(t, "memcached.yml").services[0]
	want := "_" + s.Spec.Ports[0].Name + "._tcp." + s.Name + ".default.svc.cluster.local"
	if s.Spec.ClusterIP != corev1.ClusterIPNone {
		t.Error("the Service of memcached is not headless")
	}
	for _, file := range files[1:] {
		if config := read(t, file).configs[0].Data["cacherouter.yml"]; !strings.Contains(config, "srv: ["+want+"]") {
			t.Errorf("%s: routers do not ask for %s:\n%s", file, want, config)
		}
	}
}

// Servers let in whom routers are labelled as.
func TestRoutersMayAsk(t *testing.T) {
	from := read(t, "memcached.yml").policies[0].Spec.Ingress[0].From[0].PodSelector.MatchLabels
	for _, file := range files[1:] {
		if m := read(t, file); !labels.SelectorFromSet(from).Matches(labels.Set(m.pods[0].template.Labels)) {
			t.Errorf("%s: servers let no pods of it in", file)
		}
	}
}
