import Ground

extension ResponseHead {
    /// The head as it is stored and sent on for the URL whose `redirects` led to it.
    ///
    /// Other caches and clients must not use the answer for longer, for others, or for other
    /// requests than the redirects allow.
    ///
    /// `examination` is that of the answer, limited by the redirects. Without redirects nothing
    /// changes.
    package func restricted(by redirects: [Redirect], _ examination: Cacheability) -> ResponseHead {
        guard !redirects.isEmpty else { return self }
        var head = self
        let heads = [self] + redirects.map(\.head)
        let isExplicit = heads.contains {
            $0.first(.cacheControl) != nil || $0.first(.expires) != nil
        }
        if isExplicit {
            head.lines.removeAll { $0.id == .cacheControl || $0.id == .expires }
            head.appendField(.cacheControl, "Cache-Control", Array(Self.control(examination).utf8))
        }
        for redirect in redirects {
            for line in redirect.head.lines where line.id == .vary {
                // A head that was stored has it already.
                let value = Array(redirect.head.bytes[line.value.range])
                let isThere = head.lines.contains {
                    $0.id == .vary && head.bytes[$0.value.range].elementsEqual(value)
                }
                if !isThere { head.appendField(.vary, "Vary", value) }
            }
        }
        return head
    }

    private static func control(_ examination: Cacheability) -> String {
        switch examination.notStoredReason {
        case .noStore: return "no-store"
        case .isPrivate: return "private, max-age=\(examination.freshness.lifetime.seconds)"
        default: break
        }
        let isAsked = examination.flags.contains(.noCache)
        return (isAsked ? "no-cache, " : "")
            + "max-age=\(examination.freshness.lifetime.seconds)"
    }

    /// Adds a line behind all others.
    package mutating func appendField(_ id: FieldName, _ name: String, _ value: [UInt8]) {
        let nameExtent = Extent(start: bytes.count, count: name.utf8.count)
        bytes += name.utf8
        let valueExtent = Extent(start: bytes.count, count: value.count)
        bytes += value
        lines.append(FieldLine(id: id, name: nameExtent, value: valueExtent))
    }
}
