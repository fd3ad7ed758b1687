import Ground
import HTTPRules

/// Bodies that claim to be images: the first byte selects the type, the second says where the rest
/// is cut in two.
///
/// Invariants: the two pieces are read like the whole, and so are single bytes while the input is
/// short; a result is final, whatever follows; a prefix has no result, or that of the whole; a body
/// that ends has a result; no side is 0.
func fuzzImage(_ bytes: [UInt8]) {
    let head = head(of: types[Int(bytes[0]) % types.count])
    let body = Array(bytes.dropFirst(2))
    let whole = checkPieces(body, cut: bytes[1], bytewiseBelow: 300) {
        Reading(head, body, stops: $0)
    }
    let part = Reading(head, body, stops: [Int(bytes[1]) * body.count / 255])
    precondition(part.open == .needsMore || part.open == whole.open)
    if whole.open != .needsMore {
        precondition(Reading(head, body + body, stops: [2 * body.count]) == whole)
    }
    if let size = whole.closed.metadata?.size { precondition(size.width > 0 && size.height > 0) }
}

private let types = [
    "image/jpeg", "image/png", "image/gif", "image/webp", "image/avif", "image/heic", "image/jxl",
    "image/bmp", "image/x-icon", "image/tiff", "image/svg+xml", "image/x-any", "text/html",
]

private func head(of type: String) -> ResponseHead {
    let name = Array("content-type".utf8)
    let value = Array(type.utf8)
    let line = FieldLine(
        id: .contentType, name: Extent(start: 0, count: name.count),
        value: Extent(start: name.count, count: value.count))
    return ResponseHead(status: 200, bytes: name + value, lines: [line])
}

/// The results for a body that arrives up to each of `stops`, while more may follow and at its end.
private struct Reading: Equatable {
    let open: ImageProbeResult
    let closed: ImageProbeResult

    init(_ head: ResponseHead, _ body: [UInt8], stops: [Int]) {
        var probe = ImageProbe(head)
        var start = 0
        for stop in stops {
            probe.consume(body.span.extracting(start..<stop))
            start = stop
        }
        open = probe.result
        probe.finish()
        closed = probe.result
        precondition(closed != .needsMore, "no finding of a body that has ended")
        precondition(open == .needsMore || open == closed, "a finding that has changed")
    }
}
