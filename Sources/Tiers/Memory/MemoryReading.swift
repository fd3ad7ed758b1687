/// What one look at the kernel's files says about the memory around the process.
package struct SystemMemorySample: Hashable, Sendable {
    /// One bound on the process's memory: a control group that it is in, or the machine.
    package struct Bound: Hashable, Sendable {
        /// For the operator: `control group /a/b`, or `machine`.
        package var name: String
        /// What everything inside may take, in bytes.
        package var limitBytes: Int
        /// What of it is taken and cannot be had back without giving something up: neither free
        /// nor page cache.
        package var workingBytes: Int

        package init(name: String, limitBytes: Int, workingBytes: Int) {
            self.name = name
            self.limitBytes = limitBytes
            self.workingBytes = workingBytes
        }

        /// What is left before the kernel has to kill; may be negative.
        package var headroomBytes: Int { limitBytes - workingBytes }

        /// What is kept free: an eighth, 16 MiB at least and 256 MiB at most.
        package var reserveBytes: Int { min(256 << 20, max(16 << 20, limitBytes / 8)) }
    }

    /// Every bound that could be read.
    package var bounds: [Bound]
    /// Share of the last ten seconds in which nothing ran because all of it waited for memory (PSI,
    /// `full avg10`), in thousandths; nil where the kernel does not say.
    package var stalledPermille: Int?

    package init(bounds: [Bound], stalledPermille: Int? = nil) {
        self.bounds = bounds
        self.stalledPermille = stalledPermille
    }

    /// The bound that the process is nearest to; nil if none could be read.
    package var tightest: Bound? {
        bounds.min { $0.headroomBytes - $0.reserveBytes < $1.headroomBytes - $1.reserveBytes }
    }
}
