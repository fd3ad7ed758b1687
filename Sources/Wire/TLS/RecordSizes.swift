import Ground

/// How much plaintext goes into each record.
///
/// Nothing of a record can be read before all of it has come. While the sender's window is small,
/// a record of 16 KiB waits for several round trips; records that fit into one segment are read as
/// they come. So the first ten are small, as many segments as the first window lets through (RFC
/// 6928), and again after a pause of a second, when the window may have closed (RFC 9293 §3.8.6
/// and RFC 5681 §4.1 let it). All others are as large as can be (RFC 8446 §5.1).
struct RecordSizePolicy {
    /// With header, content type and tag (22 bytes) and the headers of TCP over IPv6 with
    /// timestamps, within 1500.
    static let smallBytes = 1370
    static let largeBytes = 16 * 1024
    static let smallCount = 10
    static let pause = Interval.seconds(1)
    /// Header, explicit nonce of TLS 1.2 or content type of TLS 1.3, and tag, at most.
    static let overheadBytes = 29

    private var smallLeft = Self.smallCount
    private var last: Instant?

    /// Something is to be written at `now`.
    mutating func beginWrite(now: Instant) {
        if let last, now - last >= Self.pause { smallLeft = Self.smallCount }
        last = now
    }

    /// Bytes of plaintext in the next record, at most.
    var bytesMax: Int { smallLeft > 0 ? Self.smallBytes : Self.largeBytes }

    /// A record was written.
    mutating func recordWritten() {
        if smallLeft > 0 { smallLeft -= 1 }
    }

    /// Bytes of ciphertext that `count` bytes of plaintext become, at most, if `pieces` of them may
    /// end a record early.
    func ciphertextBytesMax(_ count: Int, pieces: Int) -> Int {
        count + (count / Self.largeBytes + smallLeft + pieces + 1) * Self.overheadBytes
    }
}
