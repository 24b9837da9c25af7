//go:build tools

// Package tools pins Helm, which make builds where the machine has none.
package tools

import _ "helm.sh/helm/v3/cmd/helm"
