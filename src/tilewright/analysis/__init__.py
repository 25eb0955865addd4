"""Facts about programs that passes, reports and checks share. Reads ops through `ir.op.Op` alone."""
