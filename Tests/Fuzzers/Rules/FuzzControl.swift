import Ground
import HTTPRules

/// Cache-Control of responses and of requests, and a field targeted at this cache; the first line
/// feed separates the two.
///
/// Invariants: a request without directives is empty; no lifetime is negative; directives that
/// forbid storing are obeyed.
func fuzzControl(_ input: [UInt8]) {
    let end = input.firstIndex(of: 0x0A) ?? input.endIndex
    let plain = Array(input[..<end])
    let targeted = Array(input[end...].dropFirst())

    let request = head([("cache-control", plain)])
    let directives = RequestCacheControl(lines: request.lines, in: request.bytes.span)
    precondition(directives.isEmpty == (directives == .none))
    check(request)
    check(head([("cdn-cache-control", targeted), ("cache-control", plain)]))
}

private func head(_ fields: [(String, [UInt8])]) -> ResponseHead {
    var head = ResponseHead(status: 200, bytes: [], lines: [])
    for (name, value) in fields {
        let nameExtent = Extent(start: head.bytes.count, count: name.utf8.count)
        head.bytes += name.utf8
        let valueExtent = Extent(start: head.bytes.count, count: value.count)
        head.bytes += value
        let id = FieldName(head.bytes.span, at: nameExtent.range)
        head.lines.append(FieldLine(id: id, name: nameExtent, value: valueExtent))
    }
    return head
}

private func check(_ head: ResponseHead) {
    let moment = Instant(nanoseconds: 1_000_000_000_000)
    let timing = Freshness.ResponseTiming(
        requestedAt: moment, receivedAt: moment,
        receivedWallTime: WallTime(seconds: 784_111_777))
    let control = EffectiveCacheControl(head).control
    for hasAuthorization in [false, true] {
        let found = CacheabilityRules.evaluate(
            head, to: RequestCacheability(hasAuthorization: hasAuthorization), timing: timing,
            policy: .site())
        precondition(found.freshness.lifetime >= .zero && found.freshness.generatedAt == moment)
        let isForbidden =
            control.flags.contains(.isPrivate)
            || (control.flags.contains(.noStore) && !control.flags.contains(.mustUnderstand))
            || (hasAuthorization && !found.flags.contains(.allowsAuthorization))
        precondition(!isForbidden || (found.notStoredReason != nil && !found.isCollapsible))
    }
}
