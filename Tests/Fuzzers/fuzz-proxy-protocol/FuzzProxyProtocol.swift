import FuzzSupport
import Ground
import Wire

/// The first bytes of a connection, from what may be no proxy.
///
/// Held: the verdict is that of a reader of the whole array; as more arrives, it needs more until
/// it is decided and stays so, and what follows a header changes nothing of it.
private func fuzz(_ input: [UInt8]) {
    let verdict = ProxyProtocol.read(input.span)
    precondition(verdict == NaiveHeader.read(input))
    var end = input.count
    if case .source(_, let found) = verdict {
        precondition(found > 0 && found <= min(input.count, ProxyProtocol.binaryBytesMax))
        end = found
    }
    var isDecided = false
    for stop in 0...min(input.count, 300) {
        let early = ProxyProtocol.read(input.span.extracting(0..<stop))
        precondition(!isDecided || early == verdict)
        isDecided = early != .needsMore
        precondition(!isDecided || early == verdict)
        if case .source = early { precondition(stop >= end) }
    }
}

/// The program's start.
@c(fuzz_proxy_protocol_main)
public func start(_ count: CInt, _ arguments: UnsafeMutableRawPointer?) -> CInt {
    unsafe runFuzzer(count, arguments, fuzz)
}
