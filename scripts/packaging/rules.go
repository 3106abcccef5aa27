// Reads alert rules and queries as Prometheus does.
//
//	rules FILE...            rule files
//	rules -queries FILE...   dashboards of Grafana: each `expr` is a query; its metrics are printed
package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

var queryParser = parser.NewParser(parser.Options{})

func main() {
	files := os.Args[1:]
	queries := len(files) > 0 && files[0] == "-queries"
	if queries {
		files = files[1:]
	}
	failed := false
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			fail(file, err)
		}
		if queries {
			var dashboard any
			if err := json.Unmarshal(text, &dashboard); err != nil {
				fail(file, err)
			}
			for _, query := range expressions(dashboard) {
				check(file, query)
			}
			continue
		}
		groups, errs := rulefmt.Parse(text, false, model.UTF8Validation, queryParser, slog.New(slog.DiscardHandler))
		for _, err := range errs {
			fmt.Fprintf(os.Stderr, "%s: %v\n", file, err)
			failed = true
		}
		if len(errs) == 0 {
			for _, group := range groups.Groups {
				for _, rule := range group.Rules {
					check(file, rule.Expr)
				}
			}
		}
	}
	if failed {
		os.Exit(1)
	}
}

// The metrics of a query, one a line.
func check(file, query string) {
	query = strings.ReplaceAll(query, "$__rate_interval", "5m")
	expression, err := queryParser.ParseExpr(query)
	if err != nil {
		fail(file, fmt.Errorf("%s: %w", query, err))
	}
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			for _, matcher := range selector.LabelMatchers {
				if matcher.Name == labels.MetricName {
					fmt.Println(matcher.Value)
				}
			}
		}
		return nil
	})
}

func expressions(value any) []string {
	var found []string
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if text, ok := inner.(string); ok && key == "expr" {
				found = append(found, text)
			}
			found = append(found, expressions(inner)...)
		}
	case []any:
		for _, inner := range value {
			found = append(found, expressions(inner)...)
		}
	}
	return found
}

func fail(file string, err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", file, err)
	os.Exit(1)
}
