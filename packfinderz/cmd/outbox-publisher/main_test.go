package main

import (
	"testing"

	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
)

func TestMain(m *testing.M) { backendtest.Main(m) }
