// Package kubernetes tests the manifests in this folder, without a cluster: against the types of the Kubernetes API,
// with each other, and their configurations with the router itself.
package kubernetes
