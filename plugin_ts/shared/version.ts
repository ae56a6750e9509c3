/** Version of this plugin. It stands for the service's own, which nobody knows before it is connected; a test compares. */
export const VERSION = "0.1.0";
