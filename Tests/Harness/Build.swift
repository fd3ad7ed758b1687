/// How the program was built that tests start.
package enum Build {
    /// True without optimisation.
    ///
    /// Each start of the program takes seconds then: its command line examines itself.
    package static var isDebug: Bool {
        #if DEBUG
            true
        #else
            false
        #endif
    }
}
