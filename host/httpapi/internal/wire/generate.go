package wire

//go:generate go tool oapi-codegen -config oapi-codegen.yaml -o wire.gen.go ../../openapi.yaml
