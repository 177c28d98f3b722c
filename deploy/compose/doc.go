// Package compose tests the docker-compose.yml of this repository, and the configurations in this folder that it
// mounts: by reading them on every machine, and by running all of it where a Docker engine answers.
package compose
