// Judges a bundle with the validators of the Operator Framework. Their own command succeeds even if they find errors.
//
//	bundle DIRECTORY
package main

import (
	"fmt"
	"os"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	validator "github.com/operator-framework/api/pkg/validation/interfaces"
)

// All that there are, but for
//   - PackageManifestValidator: for the form before bundles, which has no annotations.yaml;
//   - OperatorHubValidator: deprecated, OperatorHubV2Validator and the two of standards are what it was;
//   - CommunityOperatorValidator: deprecated, what it looked at is a program of its own for one catalog;
//   - MultipleArchitecturesValidator: asks registries for the images, which are not pushed.
var validators = []struct {
	name  string
	judge validator.Validator
}{
	{"service version", validation.ClusterServiceVersionValidator},
	{"definition", validation.CustomResourceDefinitionValidator},
	{"bundle", validation.BundleValidator},
	{"operatorhub", validation.OperatorHubV2Validator},
	{"categories", validation.StandardCategoriesValidator},
	{"capabilities", validation.StandardCapabilitiesValidator},
	{"object", validation.ObjectValidator},
	{"operator group", validation.OperatorGroupValidator},
	{"removed APIs", validation.AlphaDeprecatedAPIsValidator},
	{"good practices", validation.GoodPracticesValidator},
}

func main() {
	bundle, err := manifests.GetBundleFromDir(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// Service version and definitions with their types: validators pass over what is of another one.
	objects := bundle.ObjectsToValidate()
	failed := false
	for _, one := range validators {
		for _, result := range one.judge.Validate(objects...) {
			for _, err := range result.Errors {
				fmt.Fprintf(os.Stderr, "error: %s: %v\n", one.name, err)
				failed = true
			}
			for _, warning := range result.Warnings {
				fmt.Printf("warning: %s: %v\n", one.name, warning)
			}
		}
	}
	if failed {
		os.Exit(1)
	}
}
