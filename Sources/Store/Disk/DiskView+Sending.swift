package import Ground
import NIOCore
import Tiers

/// What goes from the page cache to a client's socket, past the node's own memory.
extension DiskView {
    /// Reads the head of a record whose body can be sent from where it lies: it was `checked` of
    /// late, and all of it is in the page cache.
    ///
    /// Nil if it has to be read first, or is not there; for an event loop.
    package func readHead(
        _ name: EntryName, key: [UInt8], verified: VerifiedRecordCache, buffer: inout [UInt8],
        now: Instant
    ) -> DiskRecordHandle? {
        guard let (entry, use) = find(name.digest),
            let metaBytes = verified.metaBytes(of: entry, use, now: now), metaBytes <= buffer.count,
            use.file.isCached(entry.bytes, at: entry.offset),
            (try? use.file.readNonblocking(metaBytes, at: entry.offset, into: &buffer)) == true,
            let (record, _) = try? record(
                in: buffer.span.extracting(0..<metaBytes), entry, use, isVerified: true),
            record.name == name, record.key == key,
            let reading = handle(record, metaBytes, entry, use), isCurrent(entry, use)
        else { return nil }
        return reading
    }

    /// Sends the body of a record that ``readHead(_:key:checked:room:now:)`` has found, or some of
    /// it; how many bytes the socket has taken.
    package func send(_ reading: DiskRecordHandle, to socket: CInt) -> Int {
        let (size, use) = (Int(reading.record.bodyBytes), reading.generation)
        let sent = slots[Int(reading.entry.location.segment)].withGeneration(use) {
            use.file.send(
                size, at: reading.entry.offset + UInt64(reading.metaBytes), to: socket)
        }
        if sent == size {
            counters.add(.nonblockingReads)
            counters.add(.readBytes, size)
        }
        return sent ?? 0
    }
}
