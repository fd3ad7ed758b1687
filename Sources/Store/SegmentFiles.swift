import Ground
package import Tiers

/// The segment files of a node's directory: what they are called, and what a start finds in them.
package enum SegmentFiles {
    /// What a start has found in one file.
    package struct Found: Sendable {
        /// The file's number, from 0.
        package var number: Int
        package var file: DiskFile
        package var outcome: SegmentRecovery.Outcome
    }

    /// The name of file `number`.
    package static func name(_ number: Int) -> String {
        let digits = String(number)
        return "segment-" + String(repeating: "0", count: max(0, 5 - digits.count)) + digits
    }

    /// What the files 0 to `count` - 1 hold, those that are there; each is read by its footer, or
    /// from one end to the other.
    ///
    /// A file that cannot be opened is left out: it says so when it is to be written to.
    package static func recover(in directory: NodeDirectory, count: Int) -> [Found] {
        (0..<count).compactMap { number in
            let path = "\(directory.path)/\(name(number))"
            guard let file = try? DiskFile(path, creates: false) else { return nil }
            return Found(
                number: number, file: file, outcome: recover(file, directory.identity))
        }
    }

    /// What one file holds for the node with this identity.
    package static func recover(
        _ file: DiskFile, _ identity: NodeIdentity
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
