/// The shares of all keys that the nodes own: `/admin/v1/ring`.
package struct RingDocument: Sendable {
    /// One node's shares.
    package struct Share: Sendable {
        /// The node id, 32 hexadecimal digits.
        package var node: String
        /// The share of keys that the node is the primary owner of, from 0 to 1.
        package var primary: Double
        /// The share of keys that the node is the second owner of, from 0 to 1.
        package var secondary: Double

        /// Creates a row; `first` and `second` are the shares as primary and as second owner.
        package init(node: String, first: Double, second: Double) {
            self.node = node
            self.primary = first
            self.secondary = second
        }
    }

    /// The number of slots of the ring.
    package var slots: Int
    /// The nodes with their shares.
    package var shares: [Share]
    /// The primary owners at ``ownershipSampleCount`` evenly spaced slots, as indices into
    /// ``shares``.
    package var ownershipSample: [Int]

    /// The number of slots sampled.
    package static let ownershipSampleCount = 360

    /// Creates the document from its parts; `strip` is its ``ownershipSample``.
    package init(slots: Int, shares: [Share], ownershipSample: [Int]) {
        self.slots = slots
        self.shares = shares
        self.ownershipSample = ownershipSample
    }

    /// The document as JSON.
    package var json: JSON {
        [
            "slots": JSON(slots),
            "members": .list(
                shares.map {
                    [
                        "node": .text($0.node), "share": .decimal($0.primary),
                        "second_share": .decimal($0.secondary),
                    ]
                }),
            "strip": .list(ownershipSample.map { JSON($0) }),
        ]
    }

    static let schema = JSONSchema.object(
        .required("slots", JSONSchema.count),
        .required(
            "members",
            JSONSchema.list(
                of: JSONSchema.object(
                    .required("node", JSONSchema.id), .required("share", JSONSchema.fraction),
                    .required("second_share", JSONSchema.fraction)))),
        .required(
            "strip",
            JSONSchema.list(
                of: JSONSchema.count, count: ownershipSampleCount...ownershipSampleCount),
            "Who owns first, by place in members, at slots evenly apart"))
}
