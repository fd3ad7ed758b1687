/// Who owns how much of all keys: `/admin/v1/ring`.
package struct RingDocument: Sendable {
    package struct Share: Sendable {
        /// 32 hexadecimal digits.
        package var node: String
        /// Of first ownership, and of second, from 0 to 1.
        package var primary: Double
        package var secondary: Double

        package init(node: String, first: Double, second: Double) {
            self.node = node
            self.primary = first
            self.secondary = second
        }
    }

    package var slots: Int
    package var shares: [Share]
    /// Who owns first, by its place in ``shares``, at ``stripCount`` slots evenly apart.
    package var ownershipSample: [Int]

    package static let ownershipSampleCount = 360

    package init(slots: Int, shares: [Share], strip: [Int]) {
        self.slots = slots
        self.shares = shares
        self.ownershipSample = strip
    }

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
