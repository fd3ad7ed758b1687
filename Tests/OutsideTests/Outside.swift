import Harness
import Testing

/// Everything that is tried from outside, over sockets; one test after the other, because each
/// takes the machine for itself.
@Suite("From outside", .serialized)
enum Outside {}
