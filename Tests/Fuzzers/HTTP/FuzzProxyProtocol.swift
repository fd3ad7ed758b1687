import Ground
import Wire

/// The first bytes of a connection, from what may be no proxy.
///
/// Invariants: the result is that of a reader of the whole array; as more arrives, it needs more
/// until it is decided and then stays, and bytes after a header do not change it.
func fuzzProxyProtocol(_ input: [UInt8]) {
    let result = ProxyProtocol.read(input.span)
    precondition(result == NaiveHeader.read(input))
    var end = input.count
    if case .source(_, let found) = result {
        precondition(found > 0 && found <= min(input.count, ProxyProtocol.binaryBytesMax))
        end = found
    }
    var isDecided = false
    for stop in 0...min(input.count, 300) {
        let early = ProxyProtocol.read(input.span.extracting(0..<stop))
        precondition(!isDecided || early == result)
        isDecided = early != .needsMore
        precondition(!isDecided || early == result)
        if case .source = early { precondition(stop >= end) }
    }
}
