import Cluster
import Ground

/// Reads, writes and reads again the content of a record.
func readContent(_ content: [UInt8]) {
    let read = Invalidation(content: content.span)
    switch read.action {
    case .unrecognized(let kept):
        precondition(kept == content, "what is not understood was changed")
        precondition(read.purge == .everythingSoft)
    case .consensus: precondition(read.clientID.isEmpty, "a record of the count with a client's id")
    case .purge(let purge):
        precondition(!read.clientID.isEmpty && !purge.targets.isEmpty)
        precondition(read.clientID.count <= Invalidation.idBytesMax)
    }
    let written: [UInt8]
    do throws(InvalidationFault) {
        written = try read.content()
    } catch {
        precondition(isAboveLimit(read), "what was read cannot be written: \(error)")
        return
    }
    precondition(
        Invalidation(content: written.span) == read,
        "another content when written again")
}

/// Returns true for a record of another version with more targets than this one writes.
private func isAboveLimit(_ read: Invalidation) -> Bool {
    guard case .purge(let purge) = read.action else { return false }
    return purge.targets.count > Invalidation.targetsMax
}

/// Reads, writes and reads again a record with its name and its hash.
func readRecord(_ bytes: [UInt8]) {
    guard let record = InvalidationRecord.read(bytes.span) else { return }
    precondition(record.id.number > 0)
    let written = record.bytes
    precondition(written.count == record.bytesCount && written.count <= bytes.count)
    precondition(
        InvalidationRecord.read(written.span) == record, "another record when written again")
    readContent(record.encodedContent)
}
