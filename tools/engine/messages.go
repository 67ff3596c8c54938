package main

import "regexp"

// What Pulumi's engine tells in words alone; its errors have no types. Each is tested against the engine's own words
// (`test/automation/plans.integration.test.ts`, `contract.ts`).
var (
	violation = regexp.MustCompile("violates plan: |is not allowed by the plan: |no plan for resource ")
	// A step that the plan has and the operation had not: a violation, unless it ended before for another reason.
	omission = regexp.MustCompile("expected resource operations for ")
	// The account that an operation failed, which says nothing of why.
	summary = regexp.MustCompile(`^\s*(error:\s*)*(update|preview|destroy|refresh) failed\s*$`)
)
