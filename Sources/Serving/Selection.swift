package import Ground
package import HTTPRules

/// The part of a usable response that a request receives.
package enum Selection: Hashable, Sendable {
    /// 200 with the whole body.
    case whole
    /// 304: the client's stored copy is current.
    case notModified
    /// 412: a precondition failed.
    case preconditionFailed
    /// 206 with one or several ranges, in the order in which they are sent.
    case parts([ByteRange])
    /// 416: none of the requested ranges exists.
    case unsatisfiable

    /// Evaluates preconditions, then If-Range and Range (the order of RFC 9110 §13.2.2).
    ///
    /// - Parameters:
    ///   - request: the kind of the request.
    ///   - lines: the field lines of the request.
    ///   - bytes: the buffer of `lines`.
    ///   - entityTag: the response's entity tag with quotes and `W/`; empty if there is none.
    ///   - facts: the response's facts. If the request is ranged, `size` must be the body's length.
    ///   - rangesMax: the number of ranges above which the whole response is sent.
    ///   - now: the current wall time.
    /// - Returns: the status and the part of the body to send.
    package static func decide(
        _ request: RequestTraits, lines: [FieldLine], in bytes: Span<UInt8>,
        entityTag: Span<UInt8>, facts: EntryMetadata, rangesMax: Int, now: WallTime
    ) -> Selection {
        if request.contains(.conditional) {
            var preconditions = Preconditions(now: now)
            for line in lines {
                preconditions.add(line, in: bytes, entityTag: entityTag, metadata: facts)
            }
            switch preconditions.result {
            case .notModified: return .notModified
            case .failed: return .preconditionFailed
            case .proceed: break
            }
        }
        guard request.contains(.ranged) else { return .whole }
        // A second Range line invalidates the field, which is not a list (RFC 9110 §5.3, §14.2).
        let ranges = lines.filter { $0.id == .range }
        guard ranges.count == 1 else { return .whole }
        for line in lines where line.id == .ifRange {
            guard
                Preconditions.ifRangeHolds(
                    bytes, at: line.value.range, entityTag: entityTag, metadata: facts, now: now)
            else { return .whole }
        }
        let set = RangeSet.parse(
            bytes, at: ranges[0].value.range, size: facts.size, countMax: rangesMax)
        switch set {
        case .whole: return .whole
        case .unsatisfiable: return .unsatisfiable
        case .single(let range): return .parts([range])
        case .multiple(let ranges): return .parts(ranges)
        }
    }
}
