package import Ground
package import HTTPRules

/// Which part of a usable answer a request gets.
package enum Selection: Hashable, Sendable {
    case whole
    /// 304: the client has it.
    case notModified
    /// 412: the client wants another one.
    case preconditionFailed
    /// 206 with one or several parts, in the order in which they go out.
    case parts([ByteRange])
    /// 416: no part of what is asked for exists.
    case unsatisfiable

    /// Decides in the order of RFC 9110 §13.2.2: preconditions first, then If-Range and Range.
    ///
    /// `lines` are the request's, in `bytes`. `entityTag` is the answer's, with quotes and `W/`;
    /// empty for none. If the request is ranged, `size` of the facts must be the answer's length.
    /// More ranges than `rangesMax` are answered with the whole.
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
        // A second line of Range, which is no list, makes it mean nothing (RFC 9110 §5.3, §14.2).
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
