// Package archtest holds the tests of how the packages lean on one another.
package archtest
