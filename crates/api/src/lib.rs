//! The CRDs, their CEL rules and printer columns, conditions, and the foreign kinds we write.
