// Judges a bundle with all validators of the Operator Framework. Their own command succeeds even if they find errors.
//
//	bundle DIRECTORY
package main

import (
	"fmt"
	"os"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	"github.com/operator-framework/api/pkg/validation/errors"
)

func main() {
	bundle, err := manifests.GetBundleFromDir(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	objects := []any{bundle}
	for _, object := range bundle.Objects {
		objects = append(objects, object)
	}
	failed := false
	show := func(kind string, results []errors.ManifestResult) {
		for _, result := range results {
			for _, err := range result.Errors {
				fmt.Fprintf(os.Stderr, "error: %s: %v\n", kind, err)
				failed = true
			}
			for _, warning := range result.Warnings {
				fmt.Printf("warning: %s: %v\n", kind, warning)
			}
		}
	}
	show("default", validation.DefaultBundleValidators.Validate(objects...))
	show("operatorhub", validation.OperatorHubV2Validator.Validate(objects...))
	show("good practices", validation.GoodPracticesValidator.Validate(objects...))
	if failed {
		os.Exit(1)
	}
}
