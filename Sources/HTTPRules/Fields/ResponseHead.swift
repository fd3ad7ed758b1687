package import Ground

/// A response of an origin without its body: the status and the field lines, over a copy of the
/// head's bytes.
///
/// Created once per fetch, not on the path of a hit.
package struct ResponseHead: Hashable, Sendable {
    /// The three-digit status code.
    package var status: UInt16
    /// The bytes that the extents of ``lines`` refer to: the head as received, and after it the
    /// bytes of lines that were added or rewritten.
    package var bytes: [UInt8]
    /// The field lines in the order received, then those added; their extents lie in ``bytes``.
    package var lines: [FieldLine]

    /// Creates a head from its parts; the extents of `lines` lie in `bytes`.
    package init(status: UInt16, bytes: [UInt8], lines: [FieldLine]) {
        self.status = status
        self.bytes = bytes
        self.lines = lines
    }

    /// Returns the lines with this name, in the order received.
    package func lines(_ name: FieldName) -> [FieldLine] {
        lines.filter { $0.id == name }
    }

    /// Returns the value of the first line with this name; `nil` if there is none.
    package func first(_ name: FieldName) -> Extent? {
        lines.first { $0.id == name }?.value
    }

    /// True if the response is a stream of server-sent events, which must be forwarded as they
    /// arrive (HTML, "Server-sent events").
    package var isEventStream: Bool {
        guard let type = first(.contentType) else { return false }
        return String(decoding: bytes[type.range], as: UTF8.self).lowercased()
            .hasPrefix("text/event-stream")
    }
}

extension ResponseHead {
    /// The complete length in bytes from Content-Range (RFC 9110 §14.4); `nil` if it names none, is
    /// missing or duplicated, or has another unit.
    package var completeLength: UInt64? {
        let values = lines(.contentRange)
        guard values.count == 1 else { return nil }
        let range = values[0].value.range
        let span = bytes.span
        let unit = range.lowerBound..<min(range.lowerBound + 6, range.upperBound)
        guard span.matchesIgnoringCase("bytes ", at: unit) else { return nil }
        let slash = FieldSyntax.find(UInt8(ascii: "/"), in: span, at: range)
        guard slash < range.upperBound else { return nil }
        return span.decimal(at: slash + 1..<range.upperBound)
    }
}

extension ResponseHead {
    /// Returns the head as stored and forwarded for the URL whose `redirects` led to it.
    ///
    /// Other caches and clients must not use the response for longer, for others, or for other
    /// requests than the redirects allow. Without redirects the head is unchanged.
    ///
    /// - Parameters:
    ///   - redirects: the redirects that were followed, in any order.
    ///   - examination: the cacheability of the response, limited by the redirects.
    /// - Returns: the head with Cache-Control and Vary restricted by `redirects`.
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
                // A stored head already has it.
                let value = Array(redirect.head.bytes[line.value.range])
                let isThere = head.lines.contains {
                    $0.id == .vary && head.bytes[$0.value.range].elementsEqual(value)
                }
                if !isThere { head.appendField(.vary, "Vary", value) }
            }
        }
        return head
    }

    /// Returns the Cache-Control value of a response that redirects have limited.
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

    /// Appends a field line after all others.
    package mutating func appendField(_ id: FieldName, _ name: String, _ value: [UInt8]) {
        let nameExtent = Extent(start: bytes.count, count: name.utf8.count)
        bytes += name.utf8
        let valueExtent = Extent(start: bytes.count, count: value.count)
        bytes += value
        lines.append(FieldLine(id: id, name: nameExtent, value: valueExtent))
    }
}
