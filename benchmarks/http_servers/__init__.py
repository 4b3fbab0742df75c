"""HTTP servers under one trial, each run by its public interface, as `hosts` has it (ADR-0024)."""
