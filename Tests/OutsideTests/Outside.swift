import Harness
import Testing

/// All tests that run against the node from outside, over sockets.
///
/// They run one after another in a process, and `deploy/test` starts a process for each suite: a
/// test blocks its thread while it waits, and the tests of a process share nodes without flags.
@Suite("From outside", .serialized)
enum Outside {}
