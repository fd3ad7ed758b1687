import Harness
import Testing

/// Everything that is tried from outside, over sockets.
///
/// One test after the other in a process, which `deploy/test` starts for each suite: a test blocks
/// its thread while it waits, and nodes without flags are shared by the tests of a process.
@Suite("From outside", .serialized)
enum Outside {}
