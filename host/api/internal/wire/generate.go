// Package wire holds the shapes of requests and answers, generated from the OpenAPI
// document.
package wire

//go:generate go tool oapi-codegen -config oapi-codegen.yaml -o wire.gen.go ../../openapi.yaml
