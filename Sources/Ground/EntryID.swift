/// Names an entry inside one shard of the memory tier: an index into its table, reused after the
/// entry is gone.
package struct EntryID: Hashable, Sendable {
    package var index: UInt32

    package init(index: UInt32) {
        self.index = index
    }
}
