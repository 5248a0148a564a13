//! The user stories, told to real clusters.
