import Ground
package import Tiers

/// The segment files of a node's directory: what they are called, and what a start finds in them.
package enum SegmentFiles {
    private static let prefix = "segment-"

    /// The name of file `number`.
    package static func name(_ number: Int) -> String {
        let digits = String(number)
        return prefix + String(repeating: "0", count: max(0, 5 - digits.count)) + digits
    }

    /// The number that a file's name gives; nil for another file.
    package static func number(_ name: String) -> Int? {
        guard name.hasPrefix(prefix), let number = Int(name.dropFirst(prefix.count)),
            number >= 0, self.name(number) == name
        else { return nil }
        return number
    }

    /// The numbers of all segment files, in order.
    static func numbers(in volume: any DiskVolume) throws(DiskFile.Failure) -> [Int] {
        try volume.names().compactMap(number).sorted()
    }

    /// The segment files in the order of their numbers.
    ///
    /// One that cannot be opened is left out: it says so when it is to be written to.
    package static func files(
        in volume: any DiskVolume
    ) throws(DiskFile.Failure) -> [(number: Int, file: any VolumeFile)] {
        try numbers(in: volume).compactMap { number in
            (try? volume.open(name(number), creates: false)).map { (number, $0) }
        }
    }

    /// What one file holds for the node with this identity: by its footer, or read from one end to
    /// the other.
    package static func recover(
        _ file: any VolumeFile, _ identity: NodeIdentity
    ) -> SegmentRecovery.Outcome {
        var recovery = SegmentRecovery(
            nodeID: identity.nodeID, segmentBytes: identity.segmentBytes)
        while let part = recovery.nextRead {
            if let bytes = try? file.read(part.bytes, at: part.offset) {
                recovery.bytesRead(bytes.span)
            } else {
                recovery.readFailed()
            }
        }
        guard let outcome = recovery.outcome else {
            preconditionFailure("a recovery that wants nothing has no outcome")
        }
        return outcome
    }
}
