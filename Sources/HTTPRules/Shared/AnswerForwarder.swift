package import Ground

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
