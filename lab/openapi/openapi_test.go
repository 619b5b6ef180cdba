// Package openapi holds the contract of the HTTP API to a parser of OpenAPI.
package openapi

import (
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// TestTheContractIsOpenAPI: a tool that reads OpenAPI 3.1 can read the document.
func TestTheContractIsOpenAPI(t *testing.T) {
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromFile("../../host/api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(loader.Context); err != nil {
		t.Error(err)
	}
	if doc.Paths.Len() < 40 {
		t.Errorf("only %d paths", doc.Paths.Len())
	}
}
