// Command pulumi-resource-kubernetes is Pulumi's own plugin for Kubernetes, for tests: its main program, without the schema
// that only generators of SDKs ask for.
package main

import "github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"

// Version is the module's; set at link time.
var Version = "0.0.0"

func main() { provider.Serve("kubernetes", Version, []byte("{}"), []byte("{}")) }
