package import Ground

/// The rules of a site for the fields of its responses; without settings only
/// Nuthatch-Cache-Control is removed.
package struct ResponseFieldRules: Hashable, Sendable {
    /// The fields that clients do not receive.
    package let removed: FieldNames
    /// The lines that replace the origin's of the same name, and are added if it sent none.
    package let lines: [FieldSetting]
    /// The fields that hold a response's tags and are not forwarded; empty if they are forwarded.
    package let tagsStripped: FieldNames
    /// True if the node adds itself to Via of responses that are not stored (RFC 9110 §7.6.3).
    package let addsVia: Bool
    /// The Cache-Control that clients receive with stored, shareable responses, without Expires;
    /// `nil` for the origin's own.
    let clientCacheControl: FieldSetting?

    /// The rules of a site without settings.
    package static let none = ResponseFieldRules()

    /// Creates the rules of a site.
    ///
    /// - Parameters:
    ///   - removed: the fields that clients do not receive; each must satisfy ``mayChange(_:)``.
    ///   - lines: the lines that replace the origin's; each must satisfy ``mayChange(_:)``.
    ///   - tagsStripped: the fields that hold tags and are not forwarded.
    ///   - clientCacheControl: the value of the Cache-Control that clients receive with stored
    ///     responses, such as `max-age=60`, a valid value of ``FieldSetting``; clients then receive
    ///     no Expires. With `nil` they receive the origin's.
    ///   - addsVia: true if the node adds itself to Via.
    package init(
        removed: FieldNames = FieldNames(), lines: [FieldSetting] = [],
        tagsStripped: FieldNames = FieldNames(), clientCacheControl: [UInt8]? = nil,
        addsVia: Bool = true
    ) {
        self.addsVia = addsVia
        for name in removed.names { precondition(Self.mayChange(name), "\(name)") }
        for line in lines { precondition(Self.mayChange(line.name), "\(line)") }
        self.removed = removed
        self.lines = lines
        self.tagsStripped = tagsStripped
        if let clientCacheControl {
            let setting = FieldSetting(name: Array("Cache-Control".utf8), value: clientCacheControl)
            precondition(setting != nil, "no field value: \(clientCacheControl)")
            self.clientCacheControl = setting
        } else {
            self.clientCacheControl = nil
        }
    }

    /// These rules without ``clientCacheControl``, for a response that is not stored or must not be
    /// reused without validation.
    ///
    /// Other caches must not keep such a response for longer than its origin says.
    package var withoutClientCacheControl: ResponseFieldRules {
        ResponseFieldRules(
            removed: removed, lines: lines, tagsStripped: tagsStripped, addsVia: addsVia)
    }

    /// Returns true for a field that an operator may set or remove in responses.
    ///
    /// False for fields that frame the message or are hop-by-hop, and for those by which a stored
    /// response is selected, validated and dated: a 304 updates the rendered lines (RFC 9111 §3.2),
    /// which must still hold the origin's values. X-Request-Id is set by this node only.
    package static func mayChange(_ name: [UInt8]) -> Bool {
        let bytes = name.span
        let id = FieldName(bytes, at: name.indices)
        switch id {
        case .age, .cacheStatus, .contentEncoding, .contentLength, .contentRange, .date, .etag,
            .lastModified, .vary, .via, .xRequestID:
            return false
        default:
            return !name.isEmpty && !HopByHop.isHopByHop(bytes, at: name.indices, id: id)
        }
    }

    /// Returns the flags that an entry needs because its rendered lines lack directives:
    /// ``EntryFlags/nuthatchControl`` and ``EntryFlags/overridesControl``.
    ///
    /// Insert them whenever a head is rendered with these rules and stored;
    /// ``StoredHead/updated(with:metadata:freshnessOnly:)`` uses them when a 304 arrives later.
    package func flags(for head: ResponseHead) -> EntryFlags {
        var flags: EntryFlags = clientCacheControl == nil ? [] : .overridesControl
        let bytes = head.bytes.span
        for line in head.lines {
            switch line.id {
            case .cacheControl where removes(line, in: bytes),
                .expires where removes(line, in: bytes):
                flags.insert(.overridesControl)
            case .other where Self.isNuthatchCacheControl(bytes, at: line.name.range):
                flags.insert(.nuthatchControl)
            default: break
            }
        }
        for setting in lines where setting.id == .cacheControl || setting.id == .expires {
            flags.insert(.overridesControl)
        }
        return flags
    }

    /// Returns the forwarded trailer section of a response with these trailer fields (RFC 9110
    /// §6.5.1).
    package func trailers(_ lines: [FieldLine], in bytes: Span<UInt8>) -> [UInt8] {
        TrailerFields.section(lines.filter { !removes($0, in: bytes) }, in: bytes)
    }

    /// Returns true if the origin's `line` is not forwarded: it is removed, replaced, or for this
    /// node only.
    func removes(_ line: FieldLine, in bytes: Span<UInt8>) -> Bool {
        let name = line.name.range
        // A response carries the id of the request that it is sent to.
        return line.id == .xRequestID
            || (line.id == .other && Self.isNuthatchCacheControl(bytes, at: name))
            || tagsStripped.contains(bytes, at: name) || removed.contains(bytes, at: name)
            || lines.contains(bytes, at: name)
    }

    /// Returns true for Nuthatch-Cache-Control, which is for this cache only (RFC 9213 §2.1).
    static func isNuthatchCacheControl(_ bytes: Span<UInt8>, at name: Range<Int>) -> Bool {
        name.count == 22 && bytes.matchesIgnoringCase("nuthatch-cache-control", at: name)
    }
}

/// Renders the heads of responses that are forwarded without being stored (RFC 9110 §7.6).
///
/// Status, reason phrase and end-to-end lines are the origin's, byte for byte and in its order.
/// Fields that frame the body are left out; the sender of the body appends its own. Age is kept as
/// other caches set it.
package enum ResponseForwarder {
    /// Appends the status line and fields of a final response, without an empty line at the end.
    ///
    /// `rules.clientCacheControl` is ignored: other caches must not keep a response for longer if
    /// it is not stored here.
    ///
    /// - Parameters:
    ///   - head: the response as received.
    ///   - rules: the rules of the site.
    ///   - forwardsTrailers: true if the body is forwarded in chunks with its trailer fields, so
    ///     that Trailer may announce them (RFC 9110 §6.6.2).
    ///   - receivedAt: the Date of a response that has none (RFC 9110 §6.6.1); `nil` adds none.
    ///   - bytes: the buffer to append to.
    package static func append(
        _ head: ResponseHead, rules: ResponseFieldRules, forwardsTrailers: Bool = false,
        receivedAt: WallTime? = nil, to bytes: inout [UInt8]
    ) {
        appendEndToEndFields(head, rules: rules, passesTrailers: forwardsTrailers, to: &bytes)
        for setting in rules.lines { bytes.appendLine(setting) }
        if let receivedAt, head.first(.date) == nil { bytes.appendDate(receivedAt) }
        if rules.addsVia { Via.append(version: StatusLine.version(head), to: &bytes) }
        guard head.status == 101 else { return }
        // The client requested the same switch as this node (RFC 9110 §7.8).
        for line in head.lines(.upgrade) { bytes.appendLine(line, of: head.bytes.span) }
        bytes.append(contentsOf: "Connection: Upgrade\r\n".utf8)
    }

    /// Returns true for an interim response that is forwarded to the client: 102, 103 and unknown
    /// ones.
    ///
    /// 100 responds to an expectation of this hop, and 101 would switch this connection (RFC 9110
    /// §15.2).
    package static func forwardsInterim(_ status: UInt16) -> Bool {
        (102...199).contains(status)
    }

    /// Appends the head of an interim response, including the empty line; nothing if it is not
    /// forwarded.
    ///
    /// An operator's lines apply to the final response only. Interim responses must not be sent to
    /// an HTTP/1.0 client (RFC 9110 §15.2).
    package static func appendInterim(
        _ head: ResponseHead, rules: ResponseFieldRules, to bytes: inout [UInt8]
    ) {
        guard forwardsInterim(head.status) else { return }
        appendEndToEndFields(head, rules: rules, passesTrailers: false, to: &bytes)
        bytes.appendLineEnd()
    }

    /// Appends the status line and the lines of the origin that are forwarded, with Trailer only if
    /// `passesTrailers`.
    private static func appendEndToEndFields(
        _ head: ResponseHead, rules: ResponseFieldRules, passesTrailers: Bool,
        to bytes: inout [UInt8]
    ) {
        bytes.reserveCapacity(bytes.count + head.bytes.count + 96)
        StatusLine.append(head, to: &bytes)
        let span = head.bytes.span
        let hop = HopByHop(head.lines, in: span)
        for line in head.lines where line.id != .contentLength {
            let isAnnouncement = line.id == .trailer && passesTrailers
            if hop.contains(line, in: span), !isAnnouncement { continue }
            if rules.removes(line, in: span) { continue }
            bytes.appendLine(line, of: span)
        }
    }
}
