package import Ground

/// What a site does to the fields of its answers before clients get them; without settings nothing
/// but what is addressed to Nuthatch is taken out.
package struct ResponseFieldRules: Hashable, Sendable {
    /// Fields that clients do not get.
    package let removed: FieldNames
    /// Lines that stand in place of the origin's of the same name, and are there if it sent none.
    package let lines: [FieldSetting]
    /// Fields that hold the tags of an answer and are not passed on; empty if they are.
    package let tagsStripped: FieldNames
    /// The node names itself in Via of answers that pass (RFC 9110 §7.6.3).
    package let addsVia: Bool
    /// The Cache-Control that clients get of stored answers that others may be given, without
    /// Expires; nil for the origin's own.
    let clientCacheControl: FieldSetting?

    /// The rules of a site without settings.
    package static let none = ResponseFieldRules()

    /// - Parameters:
    ///   - removed: as ``removed``; each ``mayChange(_:)``.
    ///   - lines: as ``lines``; each ``mayChange(_:)``.
    ///   - tagsStripped: as ``tagsStripped``.
    ///   - clientCacheControl: the value of the Cache-Control that clients get of stored answers,
    ///     such as `max-age=60`, which ``FieldSetting`` takes; they get no Expires then. Nil leaves
    ///     the origin's.
    ///   - addsVia: as ``addsVia``.
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

    /// The same for an answer that is not stored, or that nobody may be given unasked: it is made
    /// no more lasting elsewhere than its origin says.
    package var withoutClientCacheControl: ResponseFieldRules {
        ResponseFieldRules(
            removed: removed, lines: lines, tagsStripped: tagsStripped, addsVia: addsVia)
    }

    /// True for a field that an operator may set or remove.
    ///
    /// Not for one that frames the message or is of one hop, nor for what a stored answer is
    /// selected, validated and dated by: a 304 updates the lines that were rendered (RFC 9111
    /// §3.2), which must still say what the origin said. X-Request-Id is
    /// this node's own.
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

    /// What the facts of `head`'s answer must say because its rendered lines will not:
    /// ``EntryFlags/ownControl`` and ``EntryFlags/hidesControl``.
    ///
    /// To be inserted whenever a head is rendered with these rules and stored; a later 304 is
    /// understood with them: see ``StoredHead/updated(with:facts:freshnessOnly:)``.
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

    /// The trailer section that goes on, of an answer with these trailer fields (RFC 9110 §6.5.1).
    package func trailers(_ lines: [FieldLine], in bytes: Span<UInt8>) -> [UInt8] {
        TrailerFields.section(lines.filter { !removes($0, in: bytes) }, in: bytes)
    }

    /// True if `line` is not passed on.
    func removes(_ line: FieldLine, in bytes: Span<UInt8>) -> Bool {
        let name = line.name.range
        // An answer has the id of the request that it is given to.
        return line.id == .xRequestID
            || (line.id == .other && Self.isNuthatchCacheControl(bytes, at: name))
            || tagsStripped.contains(bytes, at: name) || removed.contains(bytes, at: name)
            || lines.contains(bytes, at: name)
    }

    /// True for Nuthatch-Cache-Control, which is for this cache and no other (RFC 9213 §2.1).
    static func isNuthatchCacheControl(_ bytes: Span<UInt8>, at name: Range<Int>) -> Bool {
        name.count == 22 && bytes.matchesIgnoringCase("nuthatch-cache-control", at: name)
    }
}

/// Writes the heads of answers that pass through unstored (RFC 9110 §7.6).
///
/// Status, reason phrase and end-to-end lines are the origin's, byte for byte and in its order.
/// Fields that frame the body are left out: whoever sends it appends its own. Age stays, as other
/// caches gave it.
package enum ResponseForwarder {
    /// Appends status line and fields of a final answer, without an empty line at the end.
    ///
    /// `rules.clientControl` does not count: an answer that is not stored is not to be made more
    /// lasting elsewhere.
    ///
    /// - Parameters:
    ///   - head: the answer as it came.
    ///   - rules: of the site.
    ///   - forwardsTrailers: the body goes on in chunks with its trailer fields, so that Trailer
    ///     may announce them (RFC 9110 §6.6.2).
    ///   - receivedAt: becomes the Date of an answer that has none (RFC 9110 §6.6.1).
    ///   - bytes: what is appended to.
    package static func append(
        _ head: ResponseHead, rules: ResponseFieldRules, forwardsTrailers: Bool = false,
        receivedAt: WallTime? = nil, to bytes: inout [UInt8]
    ) {
        appendEndToEndFields(head, rules: rules, passesTrailers: forwardsTrailers, to: &bytes)
        for setting in rules.lines { bytes.appendLine(setting) }
        if let receivedAt, head.first(.date) == nil { bytes.appendDate(receivedAt) }
        if rules.addsVia { Via.append(version: StatusLine.version(head), to: &bytes) }
        guard head.status == 101 else { return }
        // What was asked of the origin is what the client asked for (RFC 9110 §7.8).
        for line in head.lines(.upgrade) { bytes.appendLine(line, of: head.bytes.span) }
        bytes.append(contentsOf: "Connection: Upgrade\r\n".utf8)
    }

    /// True for an interim answer that goes on to the client: 103, 102 and what is not known.
    ///
    /// 100 answers an expectation of this hop, 101 would switch this connection (RFC 9110 §15.2).
    package static func forwardsInterim(_ status: UInt16) -> Bool {
        (102...199).contains(status)
    }

    /// Appends the head of an interim answer, with the empty line that ends it.
    ///
    /// An operator's lines are for the final answer. No client of HTTP/1.0 may be sent one (RFC
    /// 9110 §15.2).
    package static func appendInterim(
        _ head: ResponseHead, rules: ResponseFieldRules, to bytes: inout [UInt8]
    ) {
        guard forwardsInterim(head.status) else { return }
        appendEndToEndFields(head, rules: rules, passesTrailers: false, to: &bytes)
        bytes.appendLineEnd()
    }

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
