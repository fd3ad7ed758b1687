import Ground
package import Tiers

/// The segment files of a node's directory: what they are called, and what a start finds in them.
package enum SegmentFiles {
    /// What a start has found in one file.
    package struct Found: Sendable {
        /// The file's number, from 0.
        package var number: Int
        package var file: any VolumeFile
        package var outcome: SegmentRecovery.Outcome
    }

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

    /// What the segment files hold, in the order of their numbers; each is read by its footer, or
    /// from one end to the other.
    ///
    /// A file that cannot be opened is left out: it says so when it is to be written to.
    package static func recover(
        in volume: any DiskVolume, _ identity: NodeIdentity
    ) throws(DiskFile.Failure) -> [Found] {
        try volume.names().compactMap(number).sorted().compactMap { number in
            guard let file = try? volume.open(name(number), creates: false) else { return nil }
            return Found(number: number, file: file, outcome: recover(file, identity))
        }
    }

    /// What one file holds for the node with this identity.
    package static func recover(
        _ file: any VolumeFile, _ identity: NodeIdentity
    ) -> SegmentRecovery.Outcome {
        var recovery = SegmentRecovery(
            nodeID: identity.nodeID, segmentBytes: identity.segmentBytes)
        while let part = recovery.wanted {
            if let bytes = try? file.read(part.bytes, at: part.offset) {
                recovery.read(bytes.span)
            } else {
                recovery.unreadable()
            }
        }
        guard let outcome = recovery.outcome else {
            preconditionFailure("a recovery that wants nothing has no outcome")
        }
        return outcome
    }
}
