import Cluster
import Ground

/// Reads a payload about invalidations, writes the result, and reads it again.
func readInvalidations(_ kind: PeerFrameKind, _ payload: [UInt8]) {
    var reader = InvalidationMessageDecoder()
    guard let message = try? reader.read(kind, payload: payload.span) else { return }
    checkRewriting(message)
}

/// Checks that a message can be written, and is the same when it is read again.
func checkRewriting(_ message: InvalidationMessage) {
    guard let frames = try? message.frames() else {
        preconditionFailure("what was read cannot be written")
    }
    var reader = InvalidationMessageDecoder()
    var whole: InvalidationMessage?
    for frame in frames {
        let part: InvalidationMessage?
        do throws(PeerFault) {
            part = try read(frame, by: &reader)
        } catch {
            preconditionFailure("what was written cannot be read: \(error)")
        }
        guard let part else { continue }
        precondition(whole == nil, "one message has become several")
        whole = part
    }
    precondition(whole == message, "another message when it was written again")
}

/// Returns the message of a frame; `nil` if the rest of it is in the next one.
private func read(
    _ frame: [UInt8], by reader: inout InvalidationMessageDecoder
) throws(PeerFault) -> InvalidationMessage? {
    let head = try PeerFrameHeader(frame.span)
    precondition(head.stream == 0 && head.kind.isInvalidationFrame)
    precondition(head.payloadBytes + PeerFrameHeader.bytesCount == frame.count)
    let payload = Array(frame.dropFirst(PeerFrameHeader.bytesCount))
    return try reader.read(head.kind, payload: payload.span)
}

/// Returns the payload with corrected hashes of its records, which would hide their contents from a
/// fuzzer.
func sealedRecords(_ kind: PeerFrameKind, _ payload: [UInt8]) -> [UInt8] {
    let tag: UInt16
    switch kind {
    case .invalidations, .repair: tag = 1
    case .query: tag = 5
    default: return payload
    }
    var payload = payload
    for field in payload.structureFields(in: 0..<payload.count) where field.tag == tag {
        payload.sealLogRecord(in: field.value)
    }
    return payload
}
