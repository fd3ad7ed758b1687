/// The shares of all keys that the nodes own: `/admin/v1/ring`.
package struct RingDocument: AdminDocument {
    /// One node's shares.
    package struct Share: AdminDocument {
        /// The node id, 32 hexadecimal digits.
        package var node = ""
        /// The share of keys that the node is the primary owner of, from 0 to 1.
        package var primary = 0.0
        /// The share of keys that the node is the second owner of, from 0 to 1.
        package var secondary = 0.0

        /// Creates a row without a node.
        package init() {}

        /// Creates a row from its parts.
        package init(node: String, primary: Double, secondary: Double) {
            self.node = node
            self.primary = primary
            self.secondary = secondary
        }

        /// The members.
        package static let fields: [Field] = [
            .required("node", \.node, as: .id),
            .required("share", \.primary),
            .required("second_share", \.secondary),
        ]
    }

    /// The number of slots of the ring.
    package var slots = 0
    /// The nodes with their shares.
    package var shares: [Share] = []
    /// The primary owners at ``ownershipSampleCount`` evenly spaced slots, as indices into
    /// ``shares``.
    package var ownershipSample = Array(repeating: 0, count: ownershipSampleCount)

    /// The number of slots sampled.
    package static let ownershipSampleCount = 360

    /// Creates the document of a ring without slots.
    package init() {}

    /// Creates the document of a ring from its parts, with an ``ownershipSample`` in which the
    /// first node owns everything.
    package init(slots: Int, shares: [Share]) {
        self.slots = slots
        self.shares = shares
    }

    /// The members.
    package static let fields: [Field] = [
        .required("slots", \.slots),
        .required("members", \.shares),
        .required(
            "strip", \.ownershipSample,
            "Primary owners at evenly spaced slots, as indices into members",
            as: .list(
                of: .count, count: ownershipSampleCount...ownershipSampleCount)),
    ]
}
